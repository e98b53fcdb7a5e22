"""The lab: made-up and real data sets to try mechanisms on."""
