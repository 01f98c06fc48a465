"""Pipelines in Hera, rendered to workflow_templates/; what a step is comes from its contract."""
