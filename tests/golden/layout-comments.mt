# before everything
#no space
   # indented

param a=1 # first
param longer = 2.5 in 0..10    # second, aligned with the first
# between


# after two empty lines
data { # the data
# in the block
  train = idx( # the files
     "x",  # one
     "label" ) # two
  x : f32[6]
  # nobody
  label : class[3] # one of three

} # end of the data
model {
  y = linear(x *
   a, 3)
  assert longer>1   :   "so"
}
train { loss = cross_entropy(y, label)
optimizer = sgd(0.1) }
# after everything