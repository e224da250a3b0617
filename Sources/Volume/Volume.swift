// Volume
