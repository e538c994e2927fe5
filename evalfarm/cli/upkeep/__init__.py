"""What a farm stands on, looked over, and what it need not keep."""
