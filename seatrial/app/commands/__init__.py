"""The commands: one file each. What they need that takes long to import, they import when they are called."""
