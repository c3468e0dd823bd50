"""What a cluster's own controllers and scheduler do, as far as serving fleets need it."""
