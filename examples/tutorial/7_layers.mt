# Several layers, and what keeps their training steady.
include "block.mt"
param context = 32
param width   = 48
param layers  = 3
param rate    = 0.05 in 0..0.9  # of what is left out in training
param lr      = 3e-3 in 0..1    # highest learning rate

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 1]
}

model {
  h = embedding(slice(window, 0, 0, context), 256, width) + weight([context, width])
  repeat i in 0..layers {
    h = block(h, 4, rate, name = "h.{i}")
  }
  scores = linear(layer_norm(h), 256)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 1, context + 1))
  metric    = accuracy(scores, slice(window, 0, 1, context + 1))
  optimizer = adamw(cosine_lr(lr, warmup = 50), weight_decay = 0.1)
  clip_norm = 1
  batch     = 8
  epochs    = 3
}
