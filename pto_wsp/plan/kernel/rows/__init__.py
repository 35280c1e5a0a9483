"""From whole tiles to loops over rows and columns, and how those run on vectors."""
