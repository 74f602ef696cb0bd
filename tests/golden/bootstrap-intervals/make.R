# Writes table.csv: bootstrap intervals of R's package `boot` for the sample in sample.csv.
# Usage: Rscript make.R, in this folder.
library(boot)

RESAMPLES <- 99999
sample <- read.csv("sample.csv")
x <- sample$value

statistics <- list(
  mean = function(v) mean(v),
  sd = function(v) sd(v),
  cv = function(v) sd(v) / mean(v),
  median = function(v) median(v),
  p90 = function(v) quantile(v, 0.9, type = 7, names = FALSE),
  iqr = function(v) IQR(v, type = 7),
  mad = function(v) mad(v, constant = 1 / qnorm(0.75)),
  trimmed_mean = function(v) mean(v, trim = 0.2)
)

rows <- NULL
add <- function(statistic, scheme, method, estimate, limits) {
  rows <<- rbind(rows, data.frame(statistic, scheme, method, estimate, low = limits[1], high = limits[2]))
}

for (name in names(statistics)) {
  of <- statistics[[name]]
  set.seed(1)
  drawn <- boot(x, function(d, i) of(d[i]), R = RESAMPLES)
  jackknife <- empinf(data = x, statistic = function(d, i) of(d[i]), type = "jack", stype = "i")
  add(name, "plain", "percentile", drawn$t0, boot.ci(drawn, type = "perc")$percent[4:5])
  add(name, "plain", "basic", drawn$t0, boot.ci(drawn, type = "basic")$basic[4:5])
  # `boot` counts resamples equal to the estimate as above it, Steelyard as half above: for a quantile that is a
  # single value of the sample these are many, and the limits differ by definition.
  if (!name %in% c("median", "p90")) {
    add(name, "plain", "bca", drawn$t0, boot.ci(drawn, type = "bca", L = jackknife)$bca[4:5])
  }
  set.seed(2)
  layers <- boot(x, function(d, i) of(d[i]), R = RESAMPLES, strata = sample$stratum)
  add(name, "strata", "percentile", layers$t0, boot.ci(layers, type = "perc")$percent[4:5])
}

# Studentised interval of the mean; variance of the mean as the variance of each resample.
set.seed(3)
student <- boot(x, function(d, i) c(mean(d[i]), var(d[i]) / length(i)), R = RESAMPLES)
add("mean", "plain", "studentised", student$t0[1], boot.ci(student, type = "stud")$student[4:5])

# Clusters: whole units are drawn.
units <- split(x, sample$cluster)
for (name in names(statistics)) {
  of <- statistics[[name]]
  set.seed(4)
  drawn <- boot(seq_along(units), function(d, i) of(unlist(units[d[i]])), R = RESAMPLES)
  add(name, "clusters", "percentile", drawn$t0, boot.ci(drawn, type = "perc")$percent[4:5])
}

write.csv(format(rows, digits = 8), "table.csv", row.names = FALSE, quote = FALSE)
