# Binding strengths: ^ over sign, sign over product, product over sum, sum over comparison.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = -x ^ 2 ^ 3 * 4 + x / 2 - 1 % 2
  k = where(not (h > 0) or h < 1 and h >= x, h, (h + 1) * 2)
  y = linear(k, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
