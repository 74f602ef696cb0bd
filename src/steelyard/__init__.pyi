from steelyard.analyse.estimate import IntervalEstimate as IntervalEstimate
from steelyard.analyse.estimate import interval as interval
from steelyard.analyse.linear import linear_model as linear_model
from steelyard.analyse.segments import fit_segments as fit_segments
from steelyard.studies.comparison.function import compare as compare

__version__: str
