"""The server: accepts wishes, delivers them to agents, absorbs what agents report."""
