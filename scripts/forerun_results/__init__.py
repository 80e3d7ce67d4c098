"""What the scripts that measure have in common."""
