"""evaluate_model: is the candidate shown not worse than the champion, and good enough at all?"""
