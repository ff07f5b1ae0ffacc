"""Random faults in a complete system, and checks that nothing is lost, duplicated or computed wrongly."""
