"""How would it have gone?  Any policy on any trace, in virtual time."""
