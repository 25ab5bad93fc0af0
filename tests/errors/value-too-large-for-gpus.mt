# mtc --target cuda
data {
  train = npy("x")
  x     : f32[65536]
}
model {
  w = weight([65536])
  h = sum(softmax(reshape(x * w, [65536, 1]) * x))
}
train {
  loss      = h
  predict   = h
  optimizer = sgd(0.1)
}
