from steelyard.analyse.estimate import IntervalEstimate as IntervalEstimate
from steelyard.analyse.estimate import interval as interval

__version__: str
