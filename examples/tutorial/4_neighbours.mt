# The same from the last four bytes: each is a vector, and two layers make scores of the four together.
param context = 32  # bytes of an example
param width   = 24  # numbers of a byte's vector
param hidden  = 96

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 4]
}

model {
  h      = embedding(slice(window, 0, 0, context + 3), 256, width)
  before = concat([
      slice(h, 0, 0, context),
      slice(h, 0, 1, context + 1),
      slice(h, 0, 2, context + 2),
      slice(h, 0, 3, context + 3),
  ], axis = 1)
  scores = linear(tanh(linear(before, hidden)), 256)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 4, context + 4))
  metric    = accuracy(scores, slice(window, 0, 4, context + 4))
  optimizer = adam(3e-3)
  batch     = 32
  epochs    = 3
}
