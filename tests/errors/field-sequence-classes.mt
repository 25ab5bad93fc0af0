data {
  train  = tokens("train.bin")
  window : class[32][9]
}
model {
  logits = linear(one_hot(slice(window, 0, 0, 8), 32), 16)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 9))
  optimizer = sgd(0.1)
}
