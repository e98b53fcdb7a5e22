"""The integer grid on which credits and contributions live."""

# 720,720 = lcm(1..16): a conversion shared by up to 16 touches is exact on the grid.
UNITS_PER_CONVERSION = 720_720

# The name under which everything outside the public publisher list is counted.
OTHER_PUBLISHER = "other"
# The name of all of them together in reports.
ALL_PUBLISHERS = "(all)"
