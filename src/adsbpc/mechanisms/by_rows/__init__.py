"""Personal budgets by rows: the past is measured again when allowances or sizes change."""
