"""Sign in to the console at an OpenID provider: the code flow with PKCE, without sessions on the server."""
