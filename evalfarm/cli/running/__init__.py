"""Running a suite: checked, planned, opened, tended, summed up, resumed, cancelled."""
