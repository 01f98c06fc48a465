"""resolve_release: what is to be released, and is there anything to release at all?"""
