# Writes table.csv: what R's package `fitdistrplus` says of the columns of sample.csv.
# Usage: Rscript make.R, in this folder.
suppressMessages(library(fitdistrplus))

sample <- read.csv("sample.csv")
rows <- NULL
add <- function(column, law, shift, fit) {
  good <- gofstat(fit)
  rows <<- rbind(rows, data.frame(column, law, shift,
    first = fit$estimate[1], second = fit$estimate[2], log_likelihood = fit$loglik, aic = fit$aic, bic = fit$bic,
    anderson_darling = good$ad, distance = good$ks))
}

for (column in names(sample)) add(column, "normal", 0, fitdist(sample[[column]], "norm"))
# Maximum likelihood with the true shift: lognormal (meanlog, sdlog), gamma (shape, rate), weibull (shape, scale).
add("lognormal", "lognormal", 1, fitdist(sample$lognormal - 1, "lnorm"))
add("gamma", "gamma", 0.5, fitdist(sample$gamma - 0.5, "gamma", control = list(reltol = 1e-14)))
add("weibull", "weibull", 0.5, fitdist(sample$weibull - 0.5, "weibull", control = list(reltol = 1e-14)))

rows[, -(1:3)] <- format(rows[, -(1:3)], digits = 10, trim = TRUE)
write.csv(rows, "table.csv", row.names = FALSE, quote = FALSE)
