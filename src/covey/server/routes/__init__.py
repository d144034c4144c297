"""The routes, one file for each subject. `ENDPOINTS` in each is what is served and what /openapi.json describes."""
