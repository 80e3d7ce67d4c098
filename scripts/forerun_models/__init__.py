"""Fetches forerun's real models and makes the derived ones it is tested with."""
