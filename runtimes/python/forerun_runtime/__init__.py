"""Forerun's Python runtime: the first process of a sandbox, which loads an action and forks its handlers.

It speaks the protocol of runtimes/PROTOCOL.md, needs Python 3.9 or newer and nothing but the
standard library, and imports as little of that as it can: its start is part of every cold start.
"""
