# All that can stand between a gradient and the weight: accumulation, clipping, a schedule, averages. Evaluation reads the
# averages; the frozen layer has no gradient.
data {
  train = idx("x", "y")
  x     : f32[12]
  y     : f32[3]
}

model {
  h = linear(x, 5)
  z = linear(h, 3, bias = false)
}

train {
  loss       = mse(z, y)
  optimizer  = sgd(cosine_lr(0.1, warmup = steps_per_epoch), momentum = 0.9, weight_decay = 0.01)
  batch      = 4
  accumulate = 2
  clip_value = 0.5
  clip_norm  = 1
  ema        = 0.99
  freeze     = ["h.bias"]
  no_decay   = ["z.*"]
}
