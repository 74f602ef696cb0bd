from steelyard.analyse.cost_curve.segments import fit_segments as fit_segments
from steelyard.analyse.intervals.estimate import IntervalEstimate as IntervalEstimate
from steelyard.analyse.intervals.estimate import interval as interval
from steelyard.analyse.linear.model import linear_model as linear_model
from steelyard.studies.comparison.function import compare as compare

__version__: str
