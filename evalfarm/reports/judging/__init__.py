"""What is told of judges: how they hold against people's labels, and the answers on which labels disagree.

calibration.py     the report of `evalfarm calibrate`
disagreements.py   one answer to be decided on, as a reviewer is shown it
sheet.py           a list of them as a file that a reviewer edits
"""
