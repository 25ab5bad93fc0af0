data {
  train  = text("input.txt", level = "byte")
  test   = text("test.txt")
  window : class[256][9]
}
model {
  logits = linear(one_hot(slice(window, 0, 0, 8), 256), 256)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 9))
  optimizer = sgd(0.1)
}
