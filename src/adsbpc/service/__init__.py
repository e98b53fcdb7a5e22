"""The service: publishers and advertisers push events, releases happen by themselves.

A front of campaigns, ledger and report; nothing private is computed here.
"""
