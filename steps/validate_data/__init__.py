"""validate_data: is the data what its contract says, and who may train on which row?"""
