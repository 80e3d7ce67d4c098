"""How a small draft model is made for a big one: the steps of recipe.py."""
