// Policy
