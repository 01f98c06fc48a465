"""The cluster's parts: what each is started with, and how it says that it is well."""
