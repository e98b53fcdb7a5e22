"""The dashboard: pages that the server renders, for whoever is signed in.

Shows released numbers by the report's own parts, and counts of rows to the operator. Never events.
"""
