print("insula")
