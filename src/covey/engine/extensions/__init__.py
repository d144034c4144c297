"""What a workspace has from elsewhere: servers of tools and languages, hooks, skills. One object for each kind."""
