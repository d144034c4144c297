"""The store on PostgreSQL, for servers that share one. SQLite stays the default, and pays nothing for it."""
