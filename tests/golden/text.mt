# Windows of a text: neighbouring ones share a character, and targets are the inputs one further.
data {
  examples = text("input.txt")
  split    = 90 / 10
  window   : class[65][9]
}
model {
  seen   = slice(window, 0, 0, 8)
  logits = linear(one_hot(seen, 65), 65)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 9))
  metric    = accuracy(logits, slice(window, 0, 1, 9))
  optimizer = sgd(0.1)
  batch     = 4
}
