# Escapes, and names in braces.
param n = 3

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  assert 1 < 2 : "a \"quoted\" word\tand {{braces}}, not {n}\\"
  y = linear(x, n)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
