data {
  train = idx("images", "labels")
  x     : f32[6, 2]
  label : class[3]
}
model {
  a = permute(x, [0])
  b = permute(x, [0, 2])
  c = permute(x, [1, 1])
  d = permute(x, 1)
  e = stack(x, x)
  f = stack([x, transpose(x)])
  g = stack([x, x], axis = 3)
  h = flip(x, 2)
  j = roll(x, 0.5, axis = 0)
}
train {
  loss      = sum(a + b + c + d) + sum(e + f + g) + sum(h + j) + sum(one_hot(label, 3))
  optimizer = sgd(0.1)
  predict   = x
}
