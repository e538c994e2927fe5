"""The farm's long-lived processes."""
