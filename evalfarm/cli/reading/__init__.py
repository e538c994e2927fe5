"""Reading what runs left: reports, comparisons, gates, graders asked again."""
