"""Certificates, and the TLS contexts and credentials built from them."""
