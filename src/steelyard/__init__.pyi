from steelyard.analyse.estimate import IntervalEstimate as IntervalEstimate
from steelyard.analyse.estimate import interval as interval
from steelyard.studies.comparison.function import compare as compare

__version__: str
