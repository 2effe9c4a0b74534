"""What the sections of the suite share: problems, systems, timing, cells, reports and pages."""
