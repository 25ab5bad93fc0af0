# What byte comes next, of a text? A table with a row for each byte: the scores of those that may follow it.
param context = 32  # bytes of an example

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 1]
}

model {
  seen   = slice(window, 0, 0, context)
  next   = slice(window, 0, 1, context + 1)
  scores = embedding(seen, 256, 256)
}

train {
  loss      = cross_entropy(scores, next)
  metric    = accuracy(scores, next)
  optimizer = adam(0.02)
  batch     = 32
  epochs    = 3
}
