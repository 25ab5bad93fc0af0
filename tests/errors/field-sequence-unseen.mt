data {
  train  = tsv("a.tsv")
  window : class[32][2] = columns("a", "b", unseen = "other")
}
model {
  logits = linear(one_hot(slice(window, 0, 0, 1), 32), 32)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 2))
  optimizer = sgd(0.1)
}
