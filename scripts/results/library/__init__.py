"""What all pages of results share: measuring, keeping what was measured, writing."""
