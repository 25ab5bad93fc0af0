# mtc --precision bf16
# Scores from the table of the embedding: 61 rows are multiplied as 64; from the scores to their gradient is one kernel.
data {
  train  = tokens("train.bin")
  window : class[61][33]
}

model {
  table  = weight([61, 32], normal(0, 0.02))
  h      = gather(table, slice(window, 0, 0, 32))
  scores = unembed(layer_norm(h), table)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 1, 33))
  optimizer = sgd(0.1)
  batch     = 16
}
