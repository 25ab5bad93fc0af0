# One layer of a GPT: several heads, a sum that goes on beside them, norms, and two layers behind.
include "block.mt"
param context = 32
param width   = 48

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 1]
}

model {
  h      = embedding(slice(window, 0, 0, context), 256, width) + weight([context, width])
  scores = linear(layer_norm(block(h, 4, 0)), 256)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 1, context + 1))
  metric    = accuracy(scores, slice(window, 0, 1, context + 1))
  optimizer = adam(3e-3)
  batch     = 32
  epochs    = 3
}
